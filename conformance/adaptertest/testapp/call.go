package testapp

import "github.com/reprise-go/reprise/conformance/adaptertest"

// Call is one request to /t/ and the response to it, in the terms of a framework. Each
// method does what a handler of that framework would do, so that the adapter meets the
// framework's own behaviour.
type Call interface {
	Output

	// Method, RawPath and RawQuery return parts of the request, the last two as they were
	// sent.
	Method() string
	RawPath() string
	RawQuery() string

	// Program returns the value of adaptertest.ProgramHeader, or "".
	Program() string

	// Body reads the body of the request to its end. It is not kept after the handler.
	Body() ([]byte, error)

	// Inform sends a 1xx response at once. A framework that cannot do so does nothing.
	Inform(status int, fields []adaptertest.Pair)

	// RemoveHeader removes a field that an outer layer set.
	RemoveHeader(name string)

	// Announce says, before the status, which trailers will be set. A framework that does
	// not need to know does nothing.
	Announce(trailers []string)

	// SetStatus sets the final status, after the fields and before the first byte. It is
	// not called if the program has no status: the framework's default or an outer
	// layer's status then applies.
	SetStatus(status int)

	// SetStatusOnly sets the final status of a response without a body, as the
	// framework's handlers do when they have nothing to write. The native handler returns
	// what it returns.
	SetStatusOnly(status int) error

	// Report adds an error to the framework's list of errors, and goes on. A framework
	// without one does nothing.
	Report(err error)

	// Stream sends what produce writes as it is flushed, after the status was set. A
	// framework that streams after its handler returned calls produce then, so produce
	// touches nothing but its output. What produce returns says how the response ends: it
	// Returns, Panics, or Aborts. If produce runs inside the handler, Stream panics for
	// it.
	Stream(produce func(Output) adaptertest.Behaviour)

	// Fail returns the framework's own error value for a status, and the native handler
	// returns it. In a framework whose handlers return no error, Fail responds with the
	// status and returns nil.
	Fail(status int) error

	// Abort drops the connection in the framework's own way. If that is a panic, it does
	// not return.
	Abort()

	// Hijack takes the connection, writes answer and closes it. The native handler
	// returns its error.
	Hijack(answer []byte) error
}

// Output is where a response goes: the call itself, or the stream of a call. Whether the
// client is still there is no concern of a handler, so nothing is answered.
type Output interface {
	// AddHeader adds a field line. After the first byte it does what the framework then
	// does, usually nothing.
	AddHeader(name, value string)

	// Write writes a part of the body in one of the ways that the framework has.
	Write(p []byte, how adaptertest.WriteMode)

	// Flush sends what was written. It is called on streams only.
	Flush()

	// SetTrailer sets a trailer that was announced, after the body. A framework without
	// trailers does nothing.
	SetTrailer(name, value string)
}
