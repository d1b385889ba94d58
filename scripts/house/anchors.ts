/** The anchors that GitHub gives to the headings of a page, in their order; one that is there already gets a number. */
export const anchorsOf = (headings: ReadonlyArray<string>): ReadonlyArray<string> => {
  const counts = new Map<string, number>()
  return headings.map((heading) => {
    const anchor = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replace(/\s/g, "-")
    const before = counts.get(anchor) ?? 0
    counts.set(anchor, before + 1)
    return before === 0 ? anchor : `${anchor}-${before}`
  })
}
