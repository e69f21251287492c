// Package openapi checks the OpenAPI document of a policy ([contract.Policy.OpenAPIJSON])
// with a validator, and the requests and responses of a real server with the document.
//
// It is a module outside of the workspaces, because the validator takes minutes to
// compile: make outside MODULES=lab/openapi runs it, as make nightly does.
package openapi

import _ "github.com/reprise-go/reprise/core/protocol/contract" // for the link above
