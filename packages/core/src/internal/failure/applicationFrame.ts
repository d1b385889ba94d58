/**
 * The place in the application that an error comes from: the first frame of its stack trace that is neither of a dependency, nor of Node, nor of the connector. Without
 * line and column, and with no more of the path than file and folder, it stays the same over deploys.
 */

/** Dead letters carry no more of a stack trace, so no more of it is read here: the answer is the same before and after. */
const maxLength = 2_048

/** A stack trace that is cut between two characters of UTF-8 loses up to three more bytes. */
const leastOfCut = maxLength - 3

/** The frame as `charge payments/charge.ts`, or as `payments/charge.ts` in a function without a name. */
export const firstApplicationFrame = (stackTrace: string, message: string): string | undefined => {
  let start = endOfHead(stackTrace, message)
  while (start < stackTrace.length && start < maxLength) {
    const found = stackTrace.indexOf("\n", start)
    const end = found === -1 ? stackTrace.length : found
    // The last line of a stack trace that was cut may be half of one.
    if (end > maxLength || (found === -1 && end >= leastOfCut)) return undefined
    const frame = frameOf(stackTrace.slice(start, end).trim())
    if (frame !== undefined) return frame
    start = end + 1
  }
  return undefined
}

/** Where the frames can begin: a message of many lines may look like some. */
const endOfHead = (stackTrace: string, message: string): number => {
  const at = message === "" ? -1 : stackTrace.indexOf(message)
  return at === -1 ? 0 : at + message.length
}

const frameOf = (line: string): string | undefined => {
  // Most frames are of dependencies: they cost one look.
  if (line.includes("/node_modules/") || !line.startsWith("at ")) return undefined
  const opening = line.endsWith(")") ? line.lastIndexOf("(") : -1
  const file = fileOf(opening === -1 ? withoutAsync(line.slice(3)) : line.slice(opening + 1, -1))
  if (file === undefined) return undefined
  const name = opening === -1 ? "" : functionName(line.slice(3, opening).trim())
  return name === "" ? file : `${name} ${file}`
}

const withoutAsync = (text: string): string => (text.startsWith("async ") ? text.slice(6) : text)

/** `Object.charge [as handler]` is `Object.charge`. */
const functionName = (text: string): string => {
  const name = withoutAsync(text)
  const alias = name.indexOf(" [as ")
  return alias === -1 ? name : name.slice(0, alias)
}

/** File and folder of a location in the application. */
const fileOf = (location: string): string | undefined => {
  if (location.startsWith("node:")) return undefined
  const given = withoutPosition(location)
  const path = given.includes("\\") ? given.replaceAll("\\", "/") : given
  const query = path.indexOf("?")
  const end = query === -1 ? path.length : query
  const slash = path.lastIndexOf("/", end)
  if (slash <= 0 || path.includes("/node_modules/") || isOwn(path)) return undefined
  const folder = path.slice(path.lastIndexOf("/", slash - 1) + 1, slash)
  return `${masked(folder, 1, 1)}/${masked(path.slice(slash + 1, end), 8, 2)}`
}

/** Without `:line:column`. */
const withoutPosition = (location: string): string => {
  let end = location.length
  for (let parts = 0; parts < 2; parts++) {
    let digits = end
    while (digits > 0 && isDigit(location.charCodeAt(digits - 1))) digits--
    if (digits === end || location[digits - 1] !== ":") break
    end = digits - 1
  }
  return location.slice(0, end)
}

/** This file's path ends with it, unless the application is bundled. Then nobody can tell the connector's code from the application's. */
const ownPath = /\/internal\/failure\/applicationFrame\.[jt]s$/
const root = ownPath.test(import.meta.url) ? import.meta.url.replace(ownPath, "/") : undefined
const rootPath = root?.replace("file://", "")

const isOwn = (path: string): boolean => root !== undefined && (path.startsWith(root) || path.startsWith(rootPath!))

/**
 * The text with `#` for each word of letters and digits that has at least so many characters, and among them so many digits: numbers, ids, UUIDs, hashes. One of eight or
 * more that consists of `a` to `f` counts as hexadecimal without digits too. Words that `-` joins are one where both are masked. The answer is cut after `most` characters.
 */
export const masked = (text: string, length: number, digits: number, most = Number.POSITIVE_INFINITY): string => {
  let out = ""
  let at = 0
  while (at < text.length && out.length < most) {
    const start = at
    let found = 0
    let hexadecimal = true
    for (let code = text.charCodeAt(at); isWord(code); code = text.charCodeAt(++at)) {
      if (isDigit(code)) found++
      else if (!isHexLetter(code)) hexadecimal = false
    }
    if (at === start) out += text[at++]
    else if ((at - start >= length && found >= digits) || (hexadecimal && at - start >= 8)) {
      out = out.endsWith("#-") ? out.slice(0, -1) : `${out}#`
    } else out += text.slice(start, at)
  }
  return out.slice(0, most)
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57
const isHexLetter = (code: number): boolean => (code >= 65 && code <= 70) || (code >= 97 && code <= 102)
const isWord = (code: number): boolean => isDigit(code) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122)
