package command

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionJSON is the version in the output for programs.
type versionJSON struct {
	Version string `json:"version"` // of the module; "(devel)" where it was built in a checkout
	Go      string `json:"go"`
}

// version is the command "version".
func (c *session) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program, and of the Go that built it",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := built()
			if c.json {
				c.printJSON(v)
				return nil
			}
			c.out.Line("reprise ", v.String())
			return nil
		},
	}
}

// String returns the version as a person reads it.
func (v versionJSON) String() string { return v.Version + " " + v.Go }

// built returns the version of this program.
func built() (v versionJSON) {
	if info, ok := debug.ReadBuildInfo(); ok {
		v = versionJSON{Version: info.Main.Version, Go: info.GoVersion}
	}
	return v
}
