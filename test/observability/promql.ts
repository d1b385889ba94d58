/** As much of Prometheus as it takes to see whether queries find what the program exposes: metrics, and the labels that each has. */

/** The labels of each series, by the name of the sample. */
export type Exposed = ReadonlyMap<string, ReadonlyArray<ReadonlyMap<string, string>>>

const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y

/** Reads the text exposition format, version 0.0.4; throws at a line that it does not allow. */
export const parse = (text: string): Exposed => {
  if (!text.endsWith("\n")) throw new Error("no line break at the end")
  const exposed = new Map<string, Array<ReadonlyMap<string, string>>>()
  const types = new Set<string>()
  for (const line of text.slice(0, -1).split("\n")) {
    const type = /^# TYPE (\S+) (?:counter|gauge|histogram|summary|untyped)$/.exec(line)
    if (type?.[1] !== undefined) {
      if (types.has(type[1])) throw new Error(`a second TYPE of ${type[1]}`)
      types.add(type[1])
      continue
    }
    if (line.startsWith("# HELP ")) continue
    const found = sample.exec(line)
    if (found === null || Number.isNaN(Number(found[3]?.replace("Inf", "Infinity"))))
      throw new Error(`not allowed: ${line}`)
    const labels = new Map<string, string>()
    const rest = found[2] ?? ""
    for (label.lastIndex = 0; label.lastIndex < rest.length; ) {
      const pair = label.exec(rest)
      if (pair?.[1] === undefined || labels.has(pair[1])) throw new Error(`labels are not allowed: ${line}`)
      labels.set(pair[1], pair[2]?.replace(/\\(.)/g, (_, escaped) => (escaped === "n" ? "\n" : escaped)) ?? "")
    }
    const name = found[1] ?? ""
    const series = exposed.get(name) ?? []
    if (series.some((other) => same(other, labels))) throw new Error(`twice: ${line}`)
    series.push(labels)
    exposed.set(name, series)
  }
  return exposed
}

const same = (one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean =>
  one.size === other.size && Array.from(one).every(([key, value]) => other.get(key) === value)

const words = new Set(["by", "without", "and", "or", "unless", "bool", "offset", "on", "ignoring", "group_left"])

/** The unknown metrics and labels that a query names. Empty when the query can be answered. */
export const missing = (query: string, exposed: Exposed): ReadonlyArray<string> => {
  const grouped: Array<string> = []
  const bare = query
    .replace(/\b(?:by|without) \(([^)]*)\)/g, (_, labels: string) => {
      grouped.push(...labels.split(",").map((name) => name.trim()))
      return ""
    })
    .replace(/\[[^\]]*\]/g, "")
  const selectors = Array.from(bare.matchAll(/([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^}]*)\})?(?!\w*\s*\()/g)).filter(
    ([, name = ""]) => !words.has(name) && !new RegExp(`\\b${name}\\s*\\(`).test(bare) && !inMatcher(bare, name)
  )
  if (selectors.length === 0) return [`no metric in: ${query}`]
  return selectors.flatMap(([, name = "", matchers = ""]) => {
    const series = exposed.get(name)
    if (series === undefined) return [name]
    const asked = [
      ...grouped,
      ...Array.from(matchers.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)/g), ([, key = ""]) => key)
    ]
    return asked.filter((key) => !series.some((labels) => labels.has(key))).map((key) => `${name}{${key}}`)
  })
}

/** Whether a name occurs between braces only: as a label, or in the value of one. */
const inMatcher = (query: string, name: string): boolean =>
  !new RegExp(`\\b${name}\\b`).test(query.replace(/\{[^}]*\}/g, ""))
