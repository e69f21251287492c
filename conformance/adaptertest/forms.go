package adaptertest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// formPart is a part of a multipart form: its Content-Disposition after the type, its own
// type, if that is not empty, and its content.
type formPart struct{ disposition, media, content string }

// upload returns a keyed call with a multipart form.
func (e *env) upload(boundary string, parts ...formPart) call {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data%s\r\n", boundary, p.disposition)
		if p.media != "" {
			fmt.Fprintf(&b, "Content-Type: %s\r\n", p.media)
		}
		fmt.Fprintf(&b, "\r\n%s\r\n", p.content)
	}
	fmt.Fprintf(&b, "--%s--\r\n", boundary)
	return e.post(created).with("Content-Type", "multipart/form-data; boundary="+boundary).withBody(b.String())
}

// title and picture are a value and a file of a form.
var (
	title   = formPart{disposition: `; name="title"`, content: "tea"}
	picture = formPart{`; name="picture"; filename="tea.png"`, "image/png", string(PatternBody(5000))}
)

var formCases = []testCase{
	{
		conformance.Case{ID: "R24h", Rule: "A multipart form is compared by its parts: name, file name, type, bytes and their order count, the boundary does not. A framework that parsed it may not know the order of different names.", Source: "RFC 7578, profile"},
		func(e *env) {
			for _, f := range []protocol.Fingerprinter{nil, protocol.CanonicalJSON} {
				srv := e.serve(Options{Guard: protocol.Config{Fingerprint: protocol.Fingerprinting{Func: f}}})
				key := func(c call) call { return c.withKeys(fmt.Sprintf("%s-%t", e.key, f == nil)) }
				again := formPart{title.disposition, "", "milk"}
				first := srv.run(key(e.upload("first", title, again, picture)))
				srv.replays(key(e.upload("----second", title, again, picture)), first)
				w := srv.dial()
				w.write(key(e.upload("third", title, again, picture)).bytes())
				srv.wantReplay(w.read(), first)
				other := func(p formPart, edit func(*formPart)) formPart { edit(&p); return p }
				for what, parts := range inOrder(map[string][]formPart{
					"value":              {other(title, func(p *formPart) { p.content = "coffee" }), again, picture},
					"name":               {other(title, func(p *formPart) { p.disposition = `; name="Title"` }), again, picture},
					"order of one name":  {again, title, picture},
					"number of values":   {title, again, again, picture},
					"file name":          {title, again, other(picture, func(p *formPart) { p.disposition = `; name="picture"; filename="t.png"` })},
					"type":               {title, again, other(picture, func(p *formPart) { p.media = "image/gif" })},
					"file":               {title, again, other(picture, func(p *formPart) { p.content = "x" + p.content[1:] })},
					"number of files":    {title, again, picture, picture},
					"value for the file": {title, again, {`; name="picture"`, "", picture.content}},
					"form without parts": {},
				}) {
					if a := srv.send(key(e.upload("first", parts...))); a.status != 422 {
						srv.Errorf("another %s is answered %v, want 422", what, a)
					}
				}
				if a := srv.send(key(e.upload("first", picture, title, again))); a.status != 422 {
					srv.wantReplay(a, first) // the framework keeps no order of names
				}
				srv.ran(1)
			}
		},
	},
	{
		conformance.Case{ID: "R24j", Rule: "A body that is no form, although its type says so, runs once: it is compared by its bytes, or by the parts that the framework makes out, or the framework refuses it.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			tooLong := strings.Repeat("b", 71)
			for what, c := range inOrder(map[string]call{
				"a body without a delimiter": e.upload("b").withBody("title=tea"),
				"an empty body":              e.upload("b").withBody(""),
				"no last delimiter":          e.upload("b").withBody(strings.TrimSuffix(e.upload("b", title).body, "--b--\r\n")),
				"a boundary of 71 bytes":     e.upload(tooLong, title),
				"a boundary in a part":       e.upload("b", formPart{title.disposition, "", "x\r\n--bx"}),
				"a part without a name":      e.upload("b", formPart{"", "", "tea"}),
				"1,001 parts":                e.upload("b", slices.Repeat([]formPart{title}, 1001)...), // mime/multipart takes 1,000
			}) {
				c = c.freshKey()
				before := srv.executions()
				first := srv.send(c)
				if first.exec() == 0 {
					if first.status/100 != 4 {
						srv.Errorf("%s is answered %v, want a run or a refusal", what, first)
					}
					continue
				}
				srv.replays(c, first)
				srv.ran(before + 1)
				srv.send(c.withBody(c.body + "\r\n"))
				srv.ran(before + 1)
			}
		},
	},
}
