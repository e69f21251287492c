(() => {
	"use strict";
	const box = document.getElementById("refresh"), kept = "reprise-console-refresh";
	let typed = false, busy = false, ticks = 0;
	box.checked = sessionStorage.getItem(kept) !== "no";
	box.closest("p").hidden = false;
	document.addEventListener("input", e => {
		if (e.target === box) sessionStorage.setItem(kept, box.checked ? "yes" : "no");
		else typed = true;
	});
	const inUse = () => !box.checked || typed || document.hidden || !getSelection().isCollapsed || document.querySelector("main :checked[type=checkbox]") ||
		document.activeElement.matches("main, main :is(a, button, input, select, textarea, summary)");
	setInterval(async () => {
		if (++ticks % 15 && !document.querySelector("main .counting") || busy || inUse()) return;
		busy = true;
		try {
			const got = await fetch(location.href, {redirect: "error"});
			if (!got.ok) throw new Error(got.statusText);
			const next = new DOMParser().parseFromString(await got.text(), "text/html").querySelector("main:has(#read)");
			if (!inUse()) document.querySelector("main").replaceWith(document.adoptNode(next));
		} catch {
			document.getElementById("read").classList.add("stale");
		} finally {
			busy = false;
		}
	}, 2000);
})();
