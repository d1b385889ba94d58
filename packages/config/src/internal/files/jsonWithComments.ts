/**
 * JSON as .NET reads `appsettings.json`: with comments, and with a comma behind the last entry.
 */

/** A string or a comment. Strings match, too, so that nothing inside of them counts. One that does not end matches up to the end of the text. */
const parts = /"(?:[^"\\]|\\[\s\S])*(?:"|$)|\/\/[^\r\n]*|\/\*[\s\S]*?(?:\*\/|$)/g

/** A string, or a comma between an entry and the end of its list or section. */
const trailingComma = /"(?:[^"\\]|\\[\s\S])*(?:"|$)|,(?=\s*[}\]])(?<![{[,]\s*,)/g

/** The text as plain JSON. Comments and trailing commas become spaces, so that every offset stays. */
export const toPlainJson = (text: string): string =>
  text
    .replaceAll(parts, (part) => (isComment(part) ? part.replaceAll(/[^\r\n]/g, " ") : part))
    .replaceAll(trailingComma, (part) => (part === "," ? " " : part))

/** A comment that does not end stays, and so is a mistake. */
const isComment = (part: string): boolean =>
  part.startsWith("//") || (part.startsWith("/*") && part.length > 3 && part.endsWith("*/"))
