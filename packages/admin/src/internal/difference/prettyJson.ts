/**
 * JSON over several lines, token by token: numbers keep all their digits, and names their order.
 */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s"[\]{},:]+/g

/** Deeper parts are indented no further: an indentation for each of very many levels would be longer than any memory. */
const deepest = 40

/** Undefined for a text that is no JSON. */
export const prettyJson = (text: string): string | undefined => {
  try {
    JSON.parse(text)
    return laidOut(text.match(tokens) ?? [])
  } catch {
    return undefined
  }
}

const laidOut = (found: ReadonlyArray<string>): string => {
  const parts: Array<string> = []
  let depth = 0
  const breakLine = () => parts.push(`\n${"  ".repeat(Math.min(depth, deepest))}`)
  for (const [index, token] of found.entries()) {
    const isInside = isOpening(found[index - 1])
    const isClosing = token === "}" || token === "]"
    if (isClosing) depth--
    if (isInside !== isClosing) breakLine()
    parts.push(token === ":" ? ": " : token)
    if (token === ",") breakLine()
    if (isOpening(token)) depth++
  }
  return parts.join("")
}

const isOpening = (token: string | undefined): boolean => token === "{" || token === "["
