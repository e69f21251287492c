package safe

import "strings"

// Screen returns what [Text] makes of s, but for the sequences that set a colour or a
// weight, which stay: what a whole screen of styled text consists of.
func Screen(s string) string {
	if !strings.Contains(s, "\x1b") {
		return Text(s)
	}
	var b strings.Builder
	for s != "" {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(Text(before))
		if !found {
			break
		}
		parameters := len(after) - len(strings.TrimLeft(after, "0123456789;"))
		if parameters == len(after) || after[parameters] != 'm' {
			b.WriteString(`\x1b[`)
			s = after
			continue
		}
		b.WriteString("\x1b[" + after[:parameters+1])
		s = after[parameters+1:]
	}
	return b.String()
}
