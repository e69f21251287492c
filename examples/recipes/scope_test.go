package main

import "testing"

// A client of another recipe can neither take the key of an event nor read its response.
func TestClientCannotTakeTheKeyOfAnEvent(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, name := range []string{"stripe", "standard-webhooks"} {
		for _, key := range []string{"evt_1", standardID} {
			s.post("/v2/payments", squareBody(key, "500"), "Authorization", "Bearer "+name)
		}
	}
	s.ran(4)
	s.want(s.deliver(stripeEvent("evt_1", "1"), 0), 200, false)
	s.want(s.send(standardSecret, standardID, standardBody, 0), 204, false)
	s.ran(6)
}
