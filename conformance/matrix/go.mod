module github.com/reprise-go/reprise/conformance/matrix

go 1.26.0
