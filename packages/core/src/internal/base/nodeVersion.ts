/**
 * Refuses a Node that is too old, when the package is imported: before anything fails in a way that does not say so. Import it first. Other
 * runtimes pass, because only Node, or what claims to be like it, has `process.versions.node`.
 */

/** As in `engines` of every package. */
const needed = [22, 19] as const

declare const process: { readonly versions?: { readonly node?: string } } | undefined

const found = typeof process === "undefined" ? undefined : process.versions?.node

if (found !== undefined) {
  const [major = 0, minor = 0] = found.split(".").map(Number)
  const isTooOld = major < needed[0] || (major === needed[0] && minor < needed[1])
  if (isTooOld)
    throw new Error(`The Event Bus Connector needs Node ${needed.join(".")} or later, and this is Node ${found}.`)
}
