package contract

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// object is a map of a JSON or YAML document whose members keep their order, so that the
// same policy always gives the same bytes. A value is an object, a list, a string, an int
// or a bool.
type object []member

type member struct {
	name  string
	value any
}

type list []any

// appendJSON appends a value, indented by two spaces for each level.
func appendJSON(dst []byte, v any, indent string) []byte {
	inner := indent + "  "
	switch v := v.(type) {
	case object:
		dst = append(dst, '{')
		for i, m := range v {
			dst = append(dst, comma(i)+"\n"+inner...)
			dst = append(dst, quoted(m.name)+": "...)
			dst = appendJSON(dst, m.value, inner)
		}
		return append(dst, "\n"+indent+"}"...)
	case list:
		dst = append(dst, '[')
		for i, element := range v {
			dst = append(dst, comma(i)+"\n"+inner...)
			dst = appendJSON(dst, element, inner)
		}
		return append(dst, "\n"+indent+"]"...)
	default:
		return append(dst, scalar(v)...)
	}
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// appendYAML appends a value after the name of its member or the dash of its element,
// with the end of its line.
func appendYAML(dst []byte, v any, indent string) []byte {
	switch v := v.(type) {
	case object:
		if len(v) == 0 {
			return append(dst, " {}\n"...)
		}
		dst = append(dst, '\n')
		return appendMembers(dst, v, indent, indent)
	case list:
		dst = append(dst, '\n')
		for _, element := range v {
			dst = append(dst, indent+"-"...)
			if members, ok := element.(object); ok {
				dst = appendMembers(append(dst, ' '), members, "", indent+"  ")
				continue
			}
			dst = appendYAML(dst, element, indent+"  ")
		}
		return dst
	case string:
		return append(dst, " "+plain(v)+"\n"...)
	default:
		return append(dst, " "+scalar(v)+"\n"...)
	}
}

// appendMembers appends the members of an object, the first of them indented by first.
func appendMembers(dst []byte, members object, first, indent string) []byte {
	for i, m := range members {
		if i > 0 {
			first = indent
		}
		dst = append(dst, first+plain(m.name)+":"...)
		dst = appendYAML(dst, m.value, indent+"  ")
	}
	return dst
}

// scalar returns a value as JSON.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return quoted(v)
	case int:
		return strconv.Itoa(v)
	case bool:
		return strconv.FormatBool(v)
	default:
		panic("contract: a document of what is neither text, number nor bool")
	}
}

func quoted(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string never fails
	return strings.TrimSuffix(b.String(), "\n")
}

// plain returns text for YAML, without quotes where it can only be text: JSON's quotes
// are those of YAML.
func plain(text string) string {
	if text == "" || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/") != "" ||
		!('A' <= text[0]&^0x20 && text[0]&^0x20 <= 'Z') {
		return quoted(text)
	}
	switch strings.ToLower(text) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return quoted(text)
	}
	return text
}
