package conformance

import "slices"

var adapterCases = slices.Concat(
	keyCases, methodCases, replayCases, headerCases,
)
