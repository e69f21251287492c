module github.com/reprise-go/reprise/proxy

go 1.25.0

require (
	github.com/pelletier/go-toml/v2 v2.4.3
	github.com/reprise-go/reprise/adapters/nethttp v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/reprise-go/reprise/adapters/internal v0.0.0 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/internal => ../adapters/internal
	github.com/reprise-go/reprise/adapters/nethttp => ../adapters/nethttp
	github.com/reprise-go/reprise/core => ../core
)

replace github.com/reprise-go/reprise/conformance => ../conformance
