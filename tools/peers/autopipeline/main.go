// Autopipeline is the test server for net/http over Redis, where every command of the
// store goes through the automatic pipeline of go-redis instead of the store's. It has
// the flags of lab/nethttp/testserver, and -full-duplex. It stands here because the
// oldest go-redis that the store supports has no such pipeline.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/redis/go-redis/v9"

	apphttp "github.com/reprise-go/reprise/adapters/nethttp/nativeapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "autopipeline:", err)
		os.Exit(1)
	}
}

func run() error {
	const fullDuplex = "-full-duplex"
	args := os.Args[1:]
	options, err := serve.ParseOptions("nethttp", slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == fullDuplex }), os.Stderr)
	if err != nil {
		return err
	}
	c, err := redis.ParseURL(options.Backend.RedisURL)
	if err != nil {
		return err
	}
	client := redis.NewClient(c)
	defer client.Close()
	o := redis.DefaultAutoPipelineOptions()
	o.FullDuplex = slices.Contains(args, fullDuplex)
	pipeline, err := client.AsyncAutoPipelineWithOptions(o)
	if err != nil {
		return err
	}
	options.Backend.NoCombining, options.Backend.RedisHook = true, automatic{pipeline}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return serve.Run(ctx, apphttp.New, options, os.Stdout, os.Stderr)
}

// automatic is a hook that sends the commands of one client through the automatic
// pipeline of another one.
type automatic struct{ pipeline *redis.AutoPipeliner }

// DialHook implements [redis.Hook].
func (automatic) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (a automatic) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return a.pipeline.Submit(ctx, cmd).Wait() }
}

// ProcessPipelineHook implements [redis.Hook]. The commands keep their order: there is
// one stream.
func (a automatic) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) (err error) {
		var claim [2]redis.AutoFuture
		sent := claim[:0]
		for _, cmd := range cmds {
			if tail, ok := cmd.(*redis.IntCmd); ok {
				cmd = once{tail}
			}
			sent = append(sent, a.pipeline.Submit(ctx, cmd))
		}
		for _, s := range sent {
			if e := s.Wait(); err == nil {
				err = e
			}
		}
		return err
	}
}

// once is the second command of a claim, which is not repeated, as the first one is not.
// The pipeline cuts a batch where two neighbors differ in this.
type once struct{ *redis.IntCmd }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }
