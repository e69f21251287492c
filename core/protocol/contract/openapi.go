package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/protocol"
)

// OpenAPIJSON returns an OpenAPI 3.1 document of components, as JSON. Its bytes depend on
// the policy only. An operation refers to them, in a separate file or after they were
// merged into its document:
//
//   - #/components/parameters/IdempotencyKey, the header, or the query parameter of
//     KeyParam;
//   - #/components/schemas/IdempotencyKeyBody, the part of a body in which KeyField finds
//     the key, for an allOf with the schema of the body;
//   - #/components/headers/…, the fields of its responses: IdempotentReplayed,
//     IdempotencyStatus, and so on;
//   - #/components/responses/Idempotency409, and the other statuses of refusals, with
//     #/components/schemas/IdempotencyProblem… for an operation that has more responses
//     of that status;
//   - #/components/schemas/IdempotencySummary, the body of a replay whose body was not
//     kept.
func (p Policy) OpenAPIJSON() []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(p.openAPI()) // texts, numbers and bools: it cannot fail
	return b.Bytes()
}

// object is a JSON object whose members keep their order, so that the same policy always
// gives the same bytes.
type object []member

type member struct {
	name  string
	value any
}

type list []any

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		err := encoder.Encode(m.name)
		b.WriteByte(':')
		if err := errors.Join(err, encoder.Encode(m.value)); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (p *Policy) openAPI() object {
	title := "The idempotency of this API"
	if p.Label != "" {
		title += ": " + p.Label
	}
	return object{
		{"openapi", "3.1.0"},
		{"info", object{{"title", title}, {"version", "1"}}},
		{"components", object{
			{"parameters", object{{"IdempotencyKey", p.parameter()}}},
			{"headers", p.headers()},
			{"responses", p.responses()},
			{"schemas", p.schemas()},
		}},
	}
}

// parameter describes the header or the query parameter that carries the key. Where the
// policy needs a key, a parameter that is the source is required, and a header beside a
// source in the body is not.
func (p *Policy) parameter() object {
	description := fmt.Sprintf("A key that is unique for each operation, such as a UUID, of 1 to %d characters. "+
		"Send the same key with every retry: the operation runs once, and retries get its response for %s.", p.MaxKeyLength, span(p.Retention))
	if len(p.Aliases) > 0 {
		description += " The key is also accepted as " + joined(p.Aliases) + "; send one of these fields only."
	}
	name, in := p.Header, "header"
	switch {
	case p.Param != "":
		name, in = p.Param, "query"
		description += " A request may have it in the header " + p.Header + ", too: then both must be the same."
	case p.Window > 0:
		description = "Without a key, a request that repeats the content of another within " + span(p.Window) + " is the same operation. " + description
	case p.Source != "":
		description = "The key is the " + p.Source + ". A request may have it in this header, too: then both must be the same. " + description
	}
	example := `"8e03978e-40d5-43dd-bc93-6894a57f9324"`
	if p.KeyMode == protocol.Compat {
		example = strings.Trim(example, `"`)
	}
	return object{
		{"name", name},
		{"in", in},
		{"description", description},
		{"required", p.Required && len(p.Aliases) == 0 && (p.Source == "" || p.Param != "")},
		{"schema", object{{"type", "string"}, {"minLength", 1}, {"maxLength", p.KeyMaxLength()}, {"pattern", p.KeyPattern()}}},
		{"example", example},
	}
}

// body describes the part of a request's body that has the key.
func (p *Policy) body() object {
	schema := object{
		{"type", "string"},
		{"description", "A key that is unique for each operation, such as a UUID. Send the same key with every retry."},
		{"minLength", 1},
		{"maxLength", p.KeyMaxLength()},
		{"pattern", p.pattern(protocol.Compat)},
		{"examples", list{"8e03978e-40d5-43dd-bc93-6894a57f9324"}},
	}
	names := strings.Split(p.Field[1:], "/")
	for _, name := range slices.Backward(names) {
		name = unescape.Replace(name)
		around := object{{"type", "object"}}
		if p.Required {
			around = append(around, member{"required", list{name}})
		}
		around = append(around, member{"properties", object{{name, schema}}})
		schema = around
	}
	return schema
}

// unescape decodes a reference token of a JSON pointer (RFC 6901, section 4).
var unescape = strings.NewReplacer("~0", "~", "~1", "/")

// headers describes the fields of responses.
func (p *Policy) headers() object {
	var all object
	for _, f := range p.markers() {
		schema := object{{"type", "string"}}
		switch {
		case len(f.values) > 0:
			schema = append(schema, member{"enum", f.values})
		default:
			schema = append(schema, member{"pattern", "^@[0-9]+$"})
		}
		all = append(all, member{f.component, object{{"description", f.description}, {"schema", schema}, {"example", f.sample}}})
	}
	return append(all, member{"RetryAfter", retryAfter(false)})
}

// retryAfter describes the field of refusals after which a client should come back, and
// which all of them have if it is required.
func retryAfter(required bool) object {
	return object{
		{"description", "After how many seconds the same request with the same key may be repeated."},
		{"required", required},
		{"schema", object{{"type", "integer"}, {"minimum", 1}}},
		{"example", 1},
	}
}

// responses describes the refusals, by their status.
func (p *Policy) responses() object {
	var all object
	for _, status := range p.statuses() {
		problems := p.of(status)
		var titles []string
		later := 0 // how many of them have Retry-After
		for _, problem := range problems {
			titles = append(titles, problem.Title+" ("+string(problem.Code)+")")
			if problem.RetryAfter > 0 {
				later++
			}
		}
		response := object{{"description", strings.Join(titles, "; ")}}
		switch later {
		case 0:
		case len(problems):
			response = append(response, member{"headers", object{{"Retry-After", retryAfter(true)}}})
		default:
			response = append(response, member{"headers", object{{"Retry-After", reference("headers", "RetryAfter")}}})
		}
		if !p.OwnProblems {
			response = append(response, member{"content", object{{"application/problem+json", object{
				{"schema", union(problems)}, {"examples", examples(problems)},
			}}}})
		}
		all = append(all, member{"Idempotency" + strconv.Itoa(status), response})
	}
	return all
}

// statuses returns the statuses of the refusals, in ascending order.
func (p *Policy) statuses() []int {
	var all []int
	for _, problem := range p.Problems {
		all = append(all, problem.Status)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// of returns the refusals with a status.
func (p *Policy) of(status int) []protocol.Problem {
	return slices.DeleteFunc(slices.Clone(p.Problems), func(problem protocol.Problem) bool { return problem.Status != status })
}

// union is the schema of a body that is one of the problems. Their constant codes tell
// them apart; a discriminator would say the same, and some validators cannot resolve the
// references beside one.
func union(problems []protocol.Problem) object {
	if len(problems) == 1 {
		return reference("schemas", schemaName(problems[0].Code))
	}
	var one list
	for _, problem := range problems {
		one = append(one, reference("schemas", schemaName(problem.Code)))
	}
	return object{{"oneOf", one}}
}

func examples(problems []protocol.Problem) object {
	var all object
	for _, problem := range problems {
		all = append(all, member{string(problem.Code), object{{"value", json.RawMessage(problem.Response().Body)}}})
	}
	return all
}

// schemas describes the bodies.
func (p *Policy) schemas() object {
	var all object
	if p.Field != "" {
		all = append(all, member{"IdempotencyKeyBody", p.body()})
	}
	if p.Oversize != protocol.Unavailable {
		all = append(all, member{"IdempotencySummary", object{
			{"type", "object"},
			{"description", "The body of a replay whose body was not kept: it has the status and the fields of the first response, and " + protocol.FieldBody + ": omitted."},
			{"required", list{"status"}},
			{"properties", object{{"status", object{{"type", "string"}, {"const", "completed"}}}}},
		}})
	}
	if p.OwnProblems {
		return all
	}
	for _, problem := range p.Problems {
		all = append(all, member{schemaName(problem.Code), object{
			{"type", "object"},
			{"description", strings.ReplaceAll(problem.Detail, "\n", " ")},
			{"required", list{"type", "title", "status", "detail", "code", "retryable"}},
			{"properties", object{
				{"type", object{{"type", "string"}, {"const", problem.Type}}},
				{"title", object{{"type", "string"}, {"const", problem.Title}}},
				{"status", object{{"type", "integer"}, {"const", problem.Status}}},
				{"detail", object{{"type", "string"}, {"minLength", 1}}},
				{"code", object{{"type", "string"}, {"const", string(problem.Code)}}},
				{"retryable", object{{"type", "boolean"}, {"const", problem.Retryable}}},
			}},
		}})
	}
	return all
}

// schemaName returns the name of a code's schema: IdempotencyProblemKeyMissing for
// key-missing.
func schemaName(code protocol.Code) string {
	words := strings.Split(string(code), "-")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):]
	}
	return "IdempotencyProblem" + strings.Join(words, "")
}

func reference(kind, name string) object {
	return object{{"$ref", "#/components/" + kind + "/" + name}}
}
