/**
 * Checks the built pages as a browser would follow them: each address inside of the site leads to a file, and each anchor to an element of it. Addresses are relative, so
 * that the site works under any path, and no page loads anything from elsewhere.
 */
import { existsSync, globSync, readFileSync, statSync } from "node:fs"
import { join, posix } from "node:path"

export interface BuiltReport {
  readonly faults: ReadonlyArray<string>
  readonly pages: number
  readonly links: number
}

interface Reference {
  readonly tag: string
  readonly address: string
}

export const checkBuilt = (out: string): BuiltReport => {
  const files = globSync("**/*.html", { cwd: out }).sort()
  const texts = new Map(files.map((file) => [file, readFileSync(join(out, file), "utf8")]))
  const anchors = new Map([...texts].map(([file, html]) => [file, new Set(anchorsIn(html))]))
  let links = 0
  const faultOf = (file: string, { tag, address }: Reference): string | undefined => {
    if (/^[a-z]+:/i.test(address)) return tag === "a" ? undefined : `loads ${address} from elsewhere`
    if (address.startsWith("/")) return `${address} is not relative`
    links++
    const [path = "", anchor] = address.split("#")
    const target = path === "" ? file : posix.join(posix.dirname(file), decodeURI(path))
    if (!existsSync(join(out, target)) || statSync(join(out, target)).isDirectory())
      return `${address} leads to nothing`
    if (anchor === undefined || anchors.get(target)?.has(decodeURIComponent(anchor)) === true) return undefined
    return `${address}: ${target} has no such anchor`
  }
  const ofPages = [...texts].flatMap(([file, html]) => faultsOf(file, referencesIn(html), faultOf))
  const ofMarkdown = globSync(["**/*.md", "llms.txt"], { cwd: out })
    .sort()
    .flatMap((file) => faultsOf(file, markdownLinks(readFileSync(join(out, file), "utf8")), withoutAnchor(faultOf)))
  return { faults: [...ofPages, ...ofMarkdown], pages: files.length, links }
}

type FaultOf = (file: string, reference: Reference) => string | undefined

const faultsOf = (file: string, references: ReadonlyArray<Reference>, faultOf: FaultOf): ReadonlyArray<string> =>
  references.flatMap((reference) => {
    const fault = faultOf(file, reference)
    return fault === undefined ? [] : [`${file}: ${fault}`]
  })

/** The anchors of Markdown are those of the page beside it, which are checked there. */
const withoutAnchor =
  (faultOf: FaultOf): FaultOf =>
  (file, { tag, address }) => {
    const path = address.replace(/#.*$/, "")
    return path === "" ? undefined : faultOf(file, { tag, address: path })
  }

const anchorsIn = (html: string): ReadonlyArray<string> =>
  [...html.matchAll(/<[^>]*? id="([^"]*)"/g)].map(([, id]) => unescaped(id!))

const referencesIn = (html: string): ReadonlyArray<Reference> =>
  [...html.matchAll(/<(\w+)[^>]*? (?:href|src)="([^"]*)"/g)].map(([, tag, address]) => ({
    tag: tag!,
    address: unescaped(address!)
  }))

const markdownLinks = (markdown: string): ReadonlyArray<Reference> =>
  [...markdown.replace(/^(```|~~~)[\s\S]*?^\1/gm, "").matchAll(/\]\(([^)\s]+)\)/g)].map(([, address]) => ({
    tag: "a",
    address: address!
  }))

const unescaped = (text: string): string =>
  text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&")
