package adaptertest

import "slices"

var cases = slices.Concat(
	keyCases, keySourceCases, methodCases, replayCases, headerCases, concurrencyCases, fingerprintCases, bodyCases, framingCases,
	outcomeCases, unknownCases, streamingCases, offloadCases, timeCases, announceCases, storeFaultCases,
	sealingCases, scopeCases, nestedCases, problemCases, trapCases,
)
