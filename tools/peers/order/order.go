// Package order is what every peer answers to POST /t/orders, with the status 201: the
// same as the test server in lab.
package order

// The body and its type.
const (
	ContentType = "application/json"
	Body        = `{"id":"ord_00000000000000000001","status":"created","currency":"EUR","amount":1999,"customer":"cus_000000000000000000000001",` +
		`"items":[{"sku":"sku_0001","quantity":1,"price":999},{"sku":"sku_0002","quantity":2,"price":500}],"created":"2026-01-01T00:00:00Z"}`
)
