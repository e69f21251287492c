// slug is the anchor that GitHub gives a heading: problem documents and links between pages name these.
export const slug = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '').replaceAll(' ', '-')
