package scores

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const head = `# Scores

<!-- made by make judge/peers from judge-scores.json; do not edit -->

What ` + "`reprise judge`" + ` says of Reprise, on each adapter and each store, and of the other idempotency middlewares that were available.

## What the judge cannot see

A middleware that meets each case may still run an operation twice, and one that fails some may be safe in its service.
None of this is in the scores:

* Crashes of the service: no run here has ` + "`--restart`" + `. A store in memory loses its records with the process.
* The store: its failover, a lost reply of it, a full or slow one, and records that a replica did not get.
* Pauses of a process that outlast its lock or lease, after which a second run may start beside the first.
* Effects: whether the work of a run and its record are written together, or one without the other. The counter counts runs.
* Races that need more load than sixteen requests at once, or several processes: no run here has ` + "`--also`" + `.
* Retention: no run here has ` + "`--retention`" + `.
* Cost, operation and upgrades.

## How to read it

* The judge is ours, and so are the services around the other middlewares. Each is wired as its documentation shows, with its defaults. Where a default is the reason and the documentation offers to change it, a note says so.
* The levels are those of a profile. ` + "`draft-07`" + ` is the text that most of them refer to; ` + "`stripe`" + ` is judged where the documentation names Stripe. Our own profile, ` + "`reprise`" + `, asks for more, and only we are judged by it.
* A case that is not shown counts for neither side.
* Cases of ` + "`framing`" + ` are about the HTTP server below as much as about the middleware. They are listed apart, as the server's, and have their own columns.
* The services send two principals (` + "`--scope`" + `). A middleware without principals does not meet the cases of ` + "`scopes`" + `; a service that has them puts the principal into the key.
* One reason may fail many cases. The number of cases is not a grade.

`

// framing is the group of the cases that are about the server below.
const framing = "framing/"

// ofServer reports whether a case is about the server below.
func (c Case) ofServer() bool { return strings.HasPrefix(c.ID, framing) }

// of returns the cases of a level, of the server or of the middleware.
func of(cases []Case, level string, server bool) []Case {
	var chosen []Case
	for _, c := range cases {
		if c.Level == level && c.ofServer() == server {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// Page returns the page of the documentation.
func (s *Scores) Page() string {
	var b strings.Builder
	b.WriteString(head)
	s.table(&b)
	b.WriteString("## Other middlewares\n\n")
	for i := range Peers {
		s.peer(&b, &Peers[i])
	}
	s.ours(&b)
	s.left(&b)
	s.commands(&b)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// table has one row for each run.
func (s *Scores) table(b *strings.Builder) {
	fmt.Fprintf(b, "## The scores of %s\n\n", s.Date)
	fmt.Fprintf(b, "The judge and Reprise are those of commit `%s`; %s.\n\n", s.Commit, versions(s.Versions))
	b.WriteString("| | profile | musts met | not met | not shown | shoulds met | not met | not shown | musts of the server met | not met |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, ours := range []bool{true, false} {
		for i := range s.Judged {
			j := &s.Judged[i]
			if j.Ours != ours {
				continue
			}
			for _, r := range j.Runs {
				must, should, server := r.Levels["must"], r.Levels["should"], r.Server["must"]
				fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", j.title(), r.Profile,
					must.Met, must.NotMet, must.NotShown, should.Met, should.NotMet, should.NotShown, server.Met, server.NotMet)
			}
		}
	}
	b.WriteString("\n")
}

func (j *Judged) title() string {
	name := j.Name
	if j.Ours {
		name = "**Reprise**, " + name
	}
	if j.Variant != "" {
		name += ", " + j.Variant
	}
	return name
}

// peer has the claims of a middleware beside the results.
func (s *Scores) peer(b *strings.Builder, p *Peer) {
	var judged []*Judged
	for i := range s.Judged {
		if s.Judged[i].Name == p.Name && !s.Judged[i].Ours {
			judged = append(judged, &s.Judged[i])
		}
	}
	if len(judged) == 0 {
		return // it is in the list of those that are left out
	}
	fmt.Fprintf(b, "### %s\n\n%s\n\nIts [documentation](%s) says:\n\n", p.Name, p.Wiring, p.Link)
	for _, c := range p.Claims {
		fmt.Fprintf(b, "* %s\n", c)
	}
	b.WriteString("\nTo be fair to it:\n\n")
	for _, n := range p.Notes {
		fmt.Fprintf(b, "* %s\n", n)
	}
	for _, j := range judged {
		for _, r := range j.Runs {
			fmt.Fprintf(b, "\n**%s, %s** (%s)\n\n", j.title(), r.Profile, versions(j.Versions))
			s.broken(b, &r)
		}
	}
	b.WriteString("\n")
}

// broken lists the cases that a run did not meet or show.
func (s *Scores) broken(b *strings.Builder, r *Run) {
	musts := of(r.NotMet, "must", false)
	if len(musts) == 0 {
		b.WriteString("No must of the middleware is broken.\n\n")
	} else {
		b.WriteString("| must that is not met | the rule | seen |\n|---|---|---|\n")
		for _, c := range musts {
			fmt.Fprintf(b, "| %s | %s | %s |\n", c.ID, cell(s.Sentences[c.ID]), cell(c.Detail))
		}
		b.WriteString("\n")
	}
	for _, list := range []struct {
		title string
		cases []Case
	}{
		{"Musts that are not met, of the server", of(r.NotMet, "must", true)},
		{"Shoulds that are not met", of(r.NotMet, "should", false)},
		{"Shoulds that are not met, of the server", of(r.NotMet, "should", true)},
		{"Musts that are not shown", slices.Concat(of(r.NotShown, "must", false), of(r.NotShown, "must", true))},
	} {
		if len(list.cases) > 0 {
			fmt.Fprintf(b, "* %s: %s.\n", list.title, ids(list.cases))
		}
	}
}

// ours has each case that one of our services does not meet, and those that do not.
func (s *Scores) ours(b *strings.Builder) {
	b.WriteString("## Reprise\n\n")
	where := map[string][]string{}
	for i := range s.Judged {
		for _, r := range s.Judged[i].Runs {
			for _, c := range r.NotMet {
				if s.Judged[i].Ours {
					key := c.Level + " " + c.ID + ": " + s.Sentences[c.ID]
					where[key] = append(where[key], s.Judged[i].title()[len("**Reprise**, "):]+" ("+r.Profile+")")
				}
			}
		}
	}
	if len(where) == 0 {
		b.WriteString("Every case that was shown is met.\n\n")
		return
	}
	b.WriteString("| not met | by |\n|---|---|\n")
	for _, c := range slices.Sorted(maps.Keys(where)) {
		fmt.Fprintf(b, "| %s | %s |\n", cell(c), strings.Join(where[c], "; "))
	}
	b.WriteString("\nThe cases of `framing` are those of net/http: its handlers do not see such a request.\n\n")
	for _, l := range Limits {
		fmt.Fprintf(b, "* %s, %s: %s\n", l.ID, strings.Join(l.Variants, ", "), l.Reason)
	}
	b.WriteString("\n")
}

// left lists the candidates without a score.
func (s *Scores) left(b *strings.Builder) {
	b.WriteString("## Not judged\n\n| candidate | reason |\n|---|---|\n")
	for _, l := range slices.Concat(s.Left, NotJudged) {
		fmt.Fprintf(b, "| %s | %s |\n", l.Name, cell(l.Reason))
	}
	b.WriteString("\n")
}

// commands lists how each service was started and judged.
func (s *Scores) commands(b *strings.Builder) {
	b.WriteString("## The commands\n\n`make judge/peers` builds and starts the services, judges each on its own port, and writes this page.\nThe programs of the others are in `tools/peers`.\n\n| service | started with |\n|---|---|\n")
	judges := map[string]bool{}
	for i := range s.Judged {
		j := &s.Judged[i]
		fmt.Fprintf(b, "| %s | `%s` |\n", j.title(), j.Service)
		for _, r := range j.Runs {
			judges[r.Command] = true
		}
	}
	b.WriteString("\nEach was judged with\n\n")
	for _, command := range slices.Sorted(maps.Keys(judges)) {
		fmt.Fprintf(b, "* `%s`\n", command)
	}
}

// ids lists the IDs of cases.
func ids(cases []Case) string {
	list := make([]string, len(cases))
	for i, c := range cases {
		list[i] = c.ID
	}
	return strings.Join(list, ", ")
}

// versions lists names and versions by name.
func versions(of map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, name+" "+of[name])
	}
	return strings.Join(list, ", ")
}

// shortened folds a detail, which may have the body of an answer, into a short line.
func shortened(detail string) string {
	const most = 160
	line := []rune(strings.Join(strings.Fields(detail), " "))
	if len(line) > most {
		line = append(line[:most], '…')
	}
	return string(line)
}

// cell makes text fit into a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`).Replace(text)
}
