module github.com/reprise-go/reprise/lab/blob

go 1.26.0
