package judge

import (
	"slices"
	"strings"
)

// Level says how strictly a profile demands a case.
type Level uint8

// The levels. None says that the profile does not have the case.
const (
	None Level = iota
	May
	Should
	Must
)

func (l Level) String() string { return [...]string{"", "may", "should", "must"}[l] }

// Profile is a set of rules that a service can claim to follow.
type Profile struct {
	Name   string
	Title  string
	column int
	quoted bool // the form of keys that its clients send by default
}

// The profiles. In Draft a case is a must if the draft says MUST, or if the draft's
// SHOULD is the purpose of the header: without it an operation runs twice, or a client
// gets the answer to another request. Where a case shows just that, it counts as a must
// in every profile.
var (
	Draft   = &Profile{Name: "draft-07", Title: "draft-ietf-httpapi-idempotency-key-header-07", column: 0, quoted: true}
	Reprise = &Profile{Name: "reprise", Title: "the rules that Reprise serves", column: 1, quoted: true}
	Stripe  = &Profile{Name: "stripe", Title: "the behaviour that Stripe documents for API v1", column: 2}
	ACP     = &Profile{Name: "acp", Title: "the Agentic Commerce Protocol, section 6 of its checkout RFC (unreleased, after 2026-04-17)", column: 3}
)

// Profiles are all profiles.
var Profiles = []*Profile{Draft, Reprise, Stripe, ACP}

// Level returns the level of a case in the profile.
func (p *Profile) Level(c *Case) Level { return c.Levels[p.column] }

// Levels are the levels of a case in the order of [Profiles].
type Levels [4]Level

// Case is one sentence about a service.
type Case struct {
	ID       string // group/name; never reused
	Sentence string
	Source   string
	Levels   Levels
	needs    need
	run      func(*env)
}

// Group returns the part of the ID that names the subject.
func (c *Case) Group() string {
	group, _, _ := strings.Cut(c.ID, "/")
	return group
}

// All are the cases of every profile, by group.
var All = slices.Concat(
	keyCases, presenceCases, replayCases, bindingCases, concurrencyCases, methodCases, scopeCases, timingCases, failureCases,
	largeCases, framingCases, problemCases, retryCases, retentionCases, crashCases,
)

// need is a set of abilities of the endpoint, and of facts that the command line
// declares.
type need uint16

const (
	optional need = 1 << iota // a request without a key runs
	required                  // a request without a key is refused
	quoted                    // quoted keys are accepted
	bare                      // bare keys are accepted
	status                    // the endpoint answers with the status it is told
	fields                    // … with the fields
	bytes                     // … with the body
	delay                     // … after the time
	abort                     // … and cuts its answer
	principals
	addresses
	otherEndpoint
	counter
	restart
	retention
	patch
)

// reasons say for each need why a case without it is not shown.
var reasons = map[need]string{
	optional:      "the endpoint refuses requests without a key",
	required:      "the endpoint takes requests without a key",
	quoted:        "the endpoint does not take quoted keys",
	bare:          "the endpoint does not take bare keys",
	status:        "the endpoint follows no program: it cannot be told to fail",
	fields:        "the endpoint follows no program: it cannot be told its header fields",
	bytes:         "the endpoint follows no program: it cannot be told its body",
	delay:         "the endpoint follows no program: it cannot be told to be slow",
	abort:         "the endpoint follows no program: it cannot be told to break off",
	principals:    "no two principals: pass --scope twice",
	addresses:     "no second address of the service: pass a second URL",
	otherEndpoint: "no second endpoint: --other",
	counter:       "no counter of runs: --executions",
	restart:       "no command that kills and starts the service: --restart",
	retention:     "the retention is unknown, or too long for --max-time: --retention",
	patch:         "the endpoint does not answer PATCH",
}

// reason says why the first of the missing needs is missing.
func (n need) reason() string { return reasons[n&-n] }
