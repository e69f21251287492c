// Code generated from core/protocol by TestClientHasEveryCode. DO NOT EDIT.

package repriseclient

// The codes.
const (
	CodeKeyMissing        Code = "key-missing"
	CodeKeyInvalid        Code = "key-invalid"
	CodeRequestInvalid    Code = "request-invalid"
	CodeScopeMissing      Code = "scope-missing"
	CodeInProgress        Code = "in-progress"
	CodeOutcomeUnknown    Code = "outcome-unknown"
	CodeResultUnavailable Code = "result-unavailable"
	CodeResultExpired     Code = "result-expired"
	CodeRequestTooLarge   Code = "request-too-large"
	CodeKeyReused         Code = "key-reused"
	CodeStoreUnavailable  Code = "store-unavailable"
	CodeNotApplied        Code = "not-applied"
	CodeRecordCorrupt     Code = "record-corrupt"
	CodeResponseTooLarge  Code = "response-too-large"
	CodeInternalError     Code = "internal-error"
)

// retryable has every code, and whether the same request with the same key may succeed
// later.
var retryable = map[Code]bool{
	CodeKeyMissing:        false,
	CodeKeyInvalid:        false,
	CodeRequestInvalid:    false,
	CodeScopeMissing:      false,
	CodeInProgress:        true,
	CodeOutcomeUnknown:    false,
	CodeResultUnavailable: false,
	CodeResultExpired:     false,
	CodeRequestTooLarge:   false,
	CodeKeyReused:         false,
	CodeStoreUnavailable:  true,
	CodeNotApplied:        true,
	CodeRecordCorrupt:     false,
	CodeResponseTooLarge:  false,
	CodeInternalError:     false,
}
