package suites

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// alsoSuite is the suite of the flag also.
const alsoSuite = "also"

// addAlso adds the server that a value of the flag also names. Its program is built by
// whoever runs the benchmark, so a library that the module proxy refuses is measured from
// a checkout of its repository.
func (o *options) addAlso(value string) error {
	name, line, _ := strings.Cut(value, "=")
	program, args, _ := strings.Cut(strings.TrimSpace(line), " ")
	if name == "" || program == "" {
		return fmt.Errorf("%q is not NAME=COMMAND", value)
	}
	v := Variant{
		Name: name, Program: program, Args: args,
		Build: func(context.Context, string, string) ([]string, error) {
			path, err := exec.LookPath(program)
			return []string{path}, err
		},
	}
	if strings.Contains(args, "{redis}") {
		v.Store = "redis"
	}
	o.also = append(o.also, v)
	return nil
}

// beside compares servers of others with net/http, and Reprise over the same kind of
// store with each of them.
func beside(also []Variant) Comparison {
	const bare = "nethttp"
	over := map[string][]string{"": {bare}, "redis": {bare}}
	c := Comparison{Name: alsoSuite, Connections: []int{1, 64}, Kinds: BothKinds, Variants: []Variant{Bare(bare)}}
	for _, v := range also {
		c.Variants = append(c.Variants, v.Over(bare))
		over[v.Store] = append(over[v.Store], v.Name)
	}
	for _, store := range []string{"memory", "redis"} {
		v := Reprise(bare, store)
		c.Variants = append(c.Variants, v.Over(over[v.Store]...))
	}
	return c
}
