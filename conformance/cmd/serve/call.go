package serve

import "github.com/reprise-go/reprise/conformance"

// call is one request to /t/ and the response to it, in the terms of a framework. Each method is what a handler of that
// framework would do by itself, so that the adapter meets the framework's own behaviour and not that of a bridge.
type call interface {
	output

	// method, rawPath and rawQuery are the request's, the last two as they were sent.
	method() string
	rawPath() string
	rawQuery() string

	// program returns the value of conformance.ProgramHeader, empty without one.
	program() string

	// body reads the body of the request to its end. It is not kept after the handler.
	body() ([]byte, error)

	// inform sends a 1xx response at once. A framework that cannot do that does nothing.
	inform(status int, fields []conformance.Pair)

	// announce says, before the status, which trailers will be set. A framework that does not need to know does nothing.
	announce(trailers []string)

	// setStatus sets the final status, after the fields and before the first byte. It is not called where the program has
	// none: the framework's default, or what an outer layer set, holds then.
	setStatus(status int)

	// stream sends what produce writes as it is flushed, after the status was set. A framework that streams after its handler
	// returned calls produce then, so produce touches nothing but its output. What produce returns says how the
	// response ends: it Returns, Panics, or Aborts. Where produce runs inside the handler, stream panics in its stead.
	stream(produce func(output) conformance.Behaviour)

	// fail returns the framework's own error value for a status, for the native handler to return, or does what handlers of
	// a framework without returned errors do, and returns nil. run returns what fail returned.
	fail(status int) error

	// abort drops the connection the way the framework has for it. Where that is a panic it does not return.
	abort()

	// hijack takes the connection, writes answer and closes it. An error is for the native handler to return.
	hijack(answer []byte) error
}

// output is where a response goes: the call itself, or the stream of a call. Whether the client is still there is no concern of a
// handler, so nothing is answered.
type output interface {
	// addHeader adds a field line. After the first byte it does what the framework then does, usually nothing.
	addHeader(name, value string)

	// write writes a part of the body in one of the ways that the framework has.
	write(p []byte, how conformance.WriteMode)

	// flush sends what was written. It is called on streams only.
	flush()

	// setTrailer sets a trailer that was announced, after the body. A framework without trailers does nothing.
	setTrailer(name, value string)
}
