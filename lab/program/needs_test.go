package program

// The program is built by the go command, so these tests import nothing of it. These are
// the modules that only the program needs: where the module proxy refuses one of them,
// the tests are left out with it (see .ci/available).
import (
	_ "github.com/rivo/uniseg"
	_ "github.com/spf13/cobra"
)
