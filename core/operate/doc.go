// Package operate is for the people who run a service: it finds records, shows them and
// what their clients get next, and ends those whose outcome is unknown. The program, the
// console and a service of your own use it; a service that only has a guard does not need
// it.
//
//   - [KeyID] and [FindID] read what an operator types.
//   - [Decode] reads the response that a record keeps, and [Encode] makes one.
//   - [NextOf] says what the client of a record gets next, [NeedOf] who has to act on it,
//     and [AnswerOf] what it keeps.
//   - [Resolve] ends a record by the decision of an operator.
//   - [NewAuditLog] logs all that happens.
package operate
