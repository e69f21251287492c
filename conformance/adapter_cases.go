package conformance

import "slices"

var adapterCases = slices.Concat(
	keyCases, methodCases, replayCases, headerCases, concurrencyAdapterCases, fingerprintCases, bodyCases,
	outcomeCases, streamingCases, timeCases, storeFaultCases, scopeCases, problemCases, trapCases,
)
