/**
 * Parses the bytes of a file into nodes. Binary, oversized and malformed content is refused with its location.
 */
import type { Issues } from "../tree/issues.ts"
import * as Node from "../tree/node.ts"
import { toPlainJson } from "./jsonWithComments.ts"
import * as Yaml from "./yaml.ts"

/** `json-with-comments`: JSON with comments and trailing commas, as .NET reads `appsettings.json`. */
export type Format = "yaml" | "json" | "json-with-comments"

/** Size limit of a file in bytes: more than a thousand bindings with every key. */
export const maxBytes = 4 * 1024 * 1024

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Decodes a file as UTF-8; undefined when it is not text. */
export const decode = (bytes: Uint8Array, file: string, issues: Issues): string | undefined => {
  if (bytes.length > maxBytes) {
    issues.unreadable(`a file of ${bytes.length} bytes`, `at most ${maxBytes} bytes`, { file })
    return undefined
  }
  const binary = bytes.indexOf(0)
  if (binary !== -1) {
    issues.unreadable(`a binary file: byte ${binary} is 0`, "text in UTF-8", { file })
    return undefined
  }
  try {
    return utf8.decode(bytes)
  } catch {
    issues.unreadable("bytes that are not UTF-8", "text in UTF-8", { file })
    return undefined
  }
}

/** Parses a text; undefined when it is malformed. */
export const parse = (text: string, file: string, format: Format, issues: Issues): Node.Node | undefined => {
  // The byte order mark is not a part of the text.
  const withoutMark = text.startsWith("\uFEFF") ? text.slice(1) : text
  const source = { name: file, text: format === "json-with-comments" ? toPlainJson(withoutMark) : withoutMark }
  if (text.length > maxBytes) {
    issues.unreadable(`a text of ${text.length} characters`, `at most ${maxBytes}`, { file })
    return undefined
  }
  const mistake = format === "yaml" ? undefined : jsonMistake(source.text)
  if (mistake !== undefined) {
    const { offset } = mistake
    const location = offset === undefined ? { file } : Node.sourceLocation({ source, offset })
    issues.unreadable("something that is not JSON", "JSON (RFC 8259)", location)
    return undefined
  }
  const parsed = Yaml.parse(source)
  if ("node" in parsed) return parsed.node
  const { found, allowed, offset } = parsed.refused
  issues.unreadable(found, allowed, Node.sourceLocation({ source, offset }))
  return undefined
}

/**
 * The offset at which a text stops being JSON, as far as the engine says it. The engine's message is not used, since it quotes the text, which may
 * hold a secret.
 */
const jsonMistake = (text: string): { readonly offset: number | undefined } | undefined => {
  try {
    JSON.parse(text)
    return undefined
  } catch (thrown) {
    const position = /at position (\d+)/.exec(String(thrown))?.[1]
    if (position !== undefined) return { offset: Number(position) }
    return { offset: /end of JSON input/.test(String(thrown)) ? text.length : undefined }
  }
}
