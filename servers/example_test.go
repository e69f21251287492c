package servers_test

import (
	"fmt"

	"github.com/reprise-go/reprise/servers"
)

// A test asks a server for its version, and skips what an older one does not have.
func ExampleVersion_AtLeast() {
	v := servers.Version{Major: 7, Minor: 2} // that of a server
	fmt.Println(v, v.AtLeast(7, 0), v.AtLeast(8, 0))
	// Output: 7.2 true false
}
