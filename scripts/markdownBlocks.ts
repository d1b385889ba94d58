export interface Block {
  readonly language: string
  readonly code: string
  /** Line of the block's first code line in its file, counted from 1. */
  readonly line: number
}

/** The fenced code blocks of a markdown text, indented ones (in lists) too. */
export const markdownBlocks = (markdown: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  const lines = markdown.split(/\r?\n/)
  for (let index = 0; index < lines.length; index++) {
    const opening = /^(\s*)(`{3,}|~{3,})\s*([\w-]*)/.exec(lines[index]!)
    if (opening === null) continue
    const [, indent = "", fence = "", language = ""] = opening
    const first = index + 1
    const isClosing = (line: string) => line.trim().startsWith(fence) && /^[`~]+$/.test(line.trim())
    index = first
    while (index < lines.length && !isClosing(lines[index]!)) index++
    const code = lines.slice(first, index).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
    blocks.push({ language, code: code.join("\n"), line: first + 1 })
  }
  return blocks
}
