package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// rpcRequest is a call of a tool, or another request of the Model Context Protocol.
type rpcRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
}

// calls reports whether r calls the tool.
func (r *rpcRequest) calls(tool string) bool {
	return r.Method == "tools/call" && r.Params.Name == tool
}

type rpcRequestKey struct{}

// rpcFrom returns the request of the context.
func rpcFrom(ctx context.Context) *rpcRequest {
	r, _ := ctx.Value(rpcRequestKey{}).(*rpcRequest)
	return r
}

// rpcResponse is a response of JSON-RPC.
type rpcResponse struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   any             `json:"error,omitempty"`
}

// rpcError returns an error of JSON-RPC.
func rpcError(code int, message string, data any) rpcResponse {
	e := map[string]any{"code": code, "message": message}
	if data != nil {
		e["data"] = data
	}
	return rpcResponse{Version: "2.0", Error: e}
}

// toolResponse returns the response with the result of a tool; renumbered adds its ID.
func toolResponse(isError bool, text string, structured any) rpcResponse {
	result := map[string]any{"resultType": "complete", "isError": isError, "content": []map[string]string{{"type": "text", "text": text}}}
	if structured != nil {
		result["structuredContent"] = structured
	}
	return rpcResponse{Version: "2.0", Result: must(json.Marshal(result))}
}

// renumbered gives each response the ID of its request. A client of JSON-RPC matches the
// two, and gives a retry a new ID, while a replay has the ID of the first request. So
// this layer stands outside of the middleware and rewrites the ID of every response; that
// of a first run stays the same. It also puts IDs into the refusals of the policy, which
// does not see the body, and calls edit for each response.
//
// It answers with application/json, which a server may choose over a stream of events
// (https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
func renumbered(next http.Handler, edit func(http.Header, *rpcResponse)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		in := new(rpcRequest)
		if err != nil || json.Unmarshal(body, in) != nil {
			respond(w, http.StatusBadRequest, rpcError(-32700, "The request is not JSON-RPC.", nil))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		held := &heldResponse{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(held, r.WithContext(context.WithValue(r.Context(), rpcRequestKey{}, in)))

		answer := held.body.Bytes()
		var out rpcResponse
		if json.Unmarshal(answer, &out) == nil && out.Version != "" {
			out.ID = in.ID
			edit(w.Header(), &out)
			answer = must(json.Marshal(out))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		w.WriteHeader(held.status)
		_, _ = w.Write(answer) // the client may be gone
	})
}

// heldResponse keeps a response that is not sent yet.
type heldResponse struct {
	http.ResponseWriter

	status int
	body   bytes.Buffer
}

// WriteHeader implements [http.ResponseWriter].
func (h *heldResponse) WriteHeader(status int) { h.status = status }

// Write implements [http.ResponseWriter].
func (h *heldResponse) Write(p []byte) (int, error) { return h.body.Write(p) }
