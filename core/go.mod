module github.com/reprise-go/reprise/core

go 1.25.0

require github.com/dunglas/httpsfv v1.1.2
