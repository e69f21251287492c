module github.com/reprise-go/reprise/compress

go 1.25.0

require (
	github.com/klauspost/compress v1.17.9
	github.com/reprise-go/reprise/core v0.0.0
)

require github.com/dunglas/httpsfv v1.1.2 // indirect

replace github.com/reprise-go/reprise/core => ../core
