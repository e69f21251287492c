module github.com/reprise-go/reprise/examples/consumer

go 1.26.0
