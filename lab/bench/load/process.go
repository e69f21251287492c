package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// processEnv makes [Main] the load generator.
const processEnv = "REPRISE_BENCH_LOAD"

// Main serves orders from standard input, if this process was started by [Start], and
// reports whether it was. A program that calls Start calls it first.
func Main(ctx context.Context) bool {
	if os.Getenv(processEnv) == "" {
		return false
	}
	if err := serve(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	return true
}

// message is a message of the process: that it is ready, then its result.
type message struct {
	Ready  bool
	Result Result
	Error  string
}

func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o Order
		if err := orders.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		result, err := Run(ctx, o, func() error {
			if err := answers.Encode(message{Ready: true}); err != nil {
				return err
			}
			var begin bool
			return orders.Decode(&begin)
		})
		m := message{Result: result}
		if err != nil {
			m.Error = err.Error()
		}
		if err := answers.Encode(m); err != nil {
			return err
		}
	}
}

// Process is a load generator in a separate process.
type Process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  *json.Encoder
	answers *json.Decoder
}

// Start starts a load generator. The program that calls it has to call [Main] first.
func Start(ctx context.Context) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env, cmd.Stderr = append(os.Environ(), processEnv+"=1"), os.Stderr
	in, err := cmd.StdinPipe() // the process ends with it
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{cmd, in, json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))}, nil
}

// Close ends the process.
func (p *Process) Close() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}

// Measure carries out an order. It calls begin when all is warm, right before the
// measurement.
func (p *Process) Measure(o Order, begin func()) (Result, error) {
	if err := p.orders.Encode(o); err != nil {
		return Result{}, err
	}
	for {
		var m message
		if err := p.answers.Decode(&m); err != nil {
			return Result{}, fmt.Errorf("the load generator: %w", err)
		}
		switch {
		case m.Error != "":
			return Result{}, fmt.Errorf("the load generator: %s", m.Error)
		case m.Ready:
			begin()
			if err := p.orders.Encode(true); err != nil {
				return Result{}, err
			}
		case m.Result.Failure != "":
			return m.Result, errors.New(m.Result.Failure)
		default:
			return m.Result, nil
		}
	}
}
