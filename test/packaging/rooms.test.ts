/** The internals of a package stand in rooms: no folder is crowded, and the README of a room is short. */
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const mostInternals = 25
const mostReadmeLines = 10

/** Folders below `src/internal` that directly hold more than 25 sources. */
const crowdedFolders = (cwd: string): ReadonlyArray<string> => {
  const sources = globSync("packages/*/src/internal/**/*.ts", { cwd })
  return Array.from(Map.groupBy(sources, dirname))
    .filter(([, files]) => files.length > mostInternals)
    .map(([folder]) => folder)
}

describe("the rooms", () => {
  it("are not crowded: no folder of internals directly holds more than 25 sources", () => {
    expect(crowdedFolders(root)).toEqual([])
  })

  it("a crowded folder is found, and named", () => {
    const tree = mkdtempSync(join(tmpdir(), "rooms-"))
    const plant = (folder: string, files: number) => {
      mkdirSync(join(tree, folder), { recursive: true })
      for (let index = 0; index < files; index++) writeFileSync(join(tree, folder, `file${index}.ts`), "")
    }
    plant("packages/core/src/internal/delivery", 25)
    plant("packages/core/src/internal", 25)
    plant("packages/outbox/src/internal", 26)
    expect(crowdedFolders(tree)).toEqual(["packages/outbox/src/internal"])
    rmSync(tree, { recursive: true })
  })

  it.each(globSync("packages/*/src/internal/*/README.md", { cwd: root }))("%s has ten lines at most", (readme) => {
    expect(readFileSync(join(root, readme), "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(mostReadmeLines)
  })
})
