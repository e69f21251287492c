package testapp

import "github.com/reprise-go/reprise/conformance/adaptertest"

// Call is one request to /t/ and the response to it, in the terms of a framework. Each
// method acts as a handler of that framework does, so that the adapter meets the
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

	// Inform sends a 1xx response at once, if the framework can.
	Inform(status int, fields []adaptertest.Pair)

	// RemoveHeader removes a field that an outer layer set.
	RemoveHeader(name string)

	// Announce declares, before the status, which trailers will be set. It is a no-op for
	// frameworks that need no declaration.
	Announce(trailers []string)

	// SetStatus sets the final status, after the fields and before the first byte. It is
	// not called if the program has no status: the framework's default or an outer
	// layer's status then applies.
	SetStatus(status int)

	// SetStatusOnly sets the final status of a response without a body, in the framework's
	// idiom. The native handler returns its result.
	SetStatusOnly(status int) error

	// Report adds an error to the framework's list of errors, if there is one, and
	// continues.
	Report(err error)

	// Stream sends the output of produce as it is flushed, after the status was set. A
	// framework that streams after its handler returned calls produce then, so produce may
	// use its output only. The result of produce tells how the response ends: it Returns,
	// Panics, or Aborts. If produce runs inside the handler, Stream panics for it. Otherwise
	// the stream ends in the way that makes the framework break off the response.
	Stream(produce func(Output) adaptertest.Behaviour)

	// Fail returns the framework's own error value for a status, and the native handler
	// returns it. In a framework whose handlers return no error, Fail responds with the
	// status and returns nil.
	Fail(status int) error

	// Abort drops the connection in the framework's own way. If that is a panic, it does
	// not return. Where there is none, it panics, and a layer outside of the middleware
	// recovers that panic and closes the connection.
	Abort()

	// Hijack takes the connection, writes answer and closes it. The native handler
	// returns its error.
	Hijack(answer []byte) error
}

// Output is the destination of a response: the call, or the stream of a call. A handler
// does not care whether the client is still there, so the methods return no error.
type Output interface {
	// AddHeader adds a field line. After the first byte most frameworks ignore it.
	AddHeader(name, value string)

	// Write writes a part of the body in one of the ways that the framework has.
	Write(p []byte, how adaptertest.WriteMode)

	// Flush sends the written bytes. It is called on streams only.
	Flush()

	// SetTrailer sets an announced trailer, after the body, if the framework has trailers.
	SetTrailer(name, value string)
}
