/**
 * Every relative link of a document leads to a file or folder of the tree, and its anchor to a heading. Every path that
 * `docs/architecture.md` names between backquotes ends the path of a file or a folder.
 */
import { existsSync, globSync, readFileSync } from "node:fs"
import { join, posix } from "node:path"
import { anchorsOf } from "./anchors.ts"
import type { Check, Violation } from "./report.ts"
import { allDocumentTexts, lineOf, type Text } from "./texts.ts"

const architecture = "docs/architecture.md"

export const links: Check = (root) => {
  const documents = allDocumentTexts(root)
  const targets = documents.flatMap(linksIn)
  const paths = documents.filter(({ path }) => path === architecture).flatMap((text) => namedPaths(root, text))
  const broken = targets.flatMap(({ text, target, at }): ReadonlyArray<Violation> => {
    const fault = faultOf(root, text, target)
    return fault === undefined ? [] : [{ file: text.path, line: lineOf(text.content, at), message: fault }]
  })
  return {
    violations: [...broken, ...paths.flatMap(({ violation }) => violation ?? [])],
    summary: `${targets.length} links of ${documents.length} documents; ${architecture} names ${paths.length} paths`
  }
}

interface Link {
  readonly text: Text
  readonly target: string
  readonly at: number
}

const linksIn = (text: Text): ReadonlyArray<Link> => {
  const prose = text.content.replace(/^(```|~~~)[\s\S]*?^\1/gm, (block) => block.replace(/[^\n]/g, " "))
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(({ 1: target, index }) => ({ text, target: target!, at: index }))
    .filter(({ target }) => !/^[a-z]+:/.test(target))
}

const faultOf = (root: string, { path, content }: Text, link: string): string | undefined => {
  const [file = "", anchor] = link.split("#")
  const target = file === "" ? path : posix.join(posix.dirname(path), file)
  if (!existsSync(join(root, target))) return `there is no ${target}`
  if (anchor === undefined || !target.endsWith(".md")) return undefined
  const page = file === "" ? content : readFileSync(join(root, target), "utf8")
  return new Set(anchorsOf(headingsOf(page))).has(anchor) ? undefined : `${target} has no heading #${anchor}`
}

const headingsOf = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!)

const namedPaths = (root: string, text: Text) => {
  const tree = globSync(["{packages,test,scripts,docs}/**/*", ".ci/*", "*"], {
    cwd: root,
    exclude: (name) => name === "node_modules" || name === "dist"
  }).map((path) => `/${path}`)
  return [...text.content.matchAll(/`((?:[\w.@-]+\/)*[\w.-]+(?:\.(?:ts|md|mjs|json)|\/))`/g)].map(
    ({ 1: name, index }) => {
      const exists = tree.some((path) => path.endsWith(`/${name!.replace(/\/$/, "")}`))
      return exists
        ? {}
        : { violation: [{ file: text.path, line: lineOf(text.content, index), message: `nothing is named ${name}` }] }
    }
  )
}
