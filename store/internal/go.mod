module github.com/reprise-go/reprise/store/internal

go 1.25.0

require github.com/reprise-go/reprise/core v0.0.0

replace github.com/reprise-go/reprise/core => ../../core
