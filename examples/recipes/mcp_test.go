package main

import (
	"encoding/json"
	"testing"
)

// call calls a tool over Streamable HTTP. meta follows the fields of _meta that every
// request has.
func (s *service) call(path, id, tool, meta, arguments string, fields ...string) answer {
	s.Helper()
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":` + id + meta + `}}}`
	a := s.post(path, body, append(fields, "Authorization", "Bearer agent", "Accept", "application/json, text/event-stream",
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool)...)
	var out rpcResponse
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || string(out.ID) != id || out.Version != "2.0" {
		s.Errorf("the response to %s is %s, %v", id, a.body, err)
	}
	return a
}

// Every response has the ID of its own request: first runs, replays and refusals.
func TestMCPToolRunsOnce(t *testing.T) {
	t.Parallel()
	const key, to = `,"com.example/idempotency-key":"4f1c"`, `{"to":"ada","amount":5}`
	s := startBlocked(t)
	first := s.begin(func() answer { return s.call("/mcp", "1", "send_invoice", key, to) })
	s.want(s.call("/mcp", "2", "send_invoice", key, to), 409, false, `"error":{"code":-32000`, "in-progress")
	s.finish()
	s.want(<-first, 200, false, "invoice 1 is sent")
	s.want(s.call("/mcp", "3", "send_invoice", key, `{"amount":5,"to":"ada"}`), 200, true, "invoice 1 is sent")
	s.want(s.call("/mcp", `"a string"`, "send_invoice", key, to), 200, true, "invoice 1 is sent")
	s.want(s.call("/mcp", "5", "send_invoice", "", to, "Idempotency-Key", "4f1c"), 200, true, "invoice 1 is sent")
	s.want(s.call("/mcp", "6", "send_invoice", key, `{"to":"bob","amount":5}`), 422, false, `"error":{"code":-32602`, "key-reused")
	s.want(s.call("/mcp", "7", "send_invoice", "", to), 400, false, `"error":{"code":-32602`, "key-missing")
	s.want(s.call("/mcp", "8", "count_invoices", "", `{}`), 200, false, `"text":"1"`)
	s.want(s.call("/mcp", "9", "no_such_tool", key, `{}`), 404, false, `"error":{"code":-32601`)
	s.want(s.post("/mcp", `[]`), 400, false, `"error":{"code":-32700`)
	s.ran(1)
}
