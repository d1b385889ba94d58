/**
 * What package managers, Node and TypeScript make of a tarball, by publint and by "are the types wrong?". The packages are ES modules only,
 * so the resolution of `require` and that of Node 10 are not judged.
 */
import { readFileSync } from "node:fs"
import { checkPackage, createPackageFromTarballData, type Problem } from "@arethetypeswrong/core"
import { problemAffectsResolutionKind, problemKindInfo } from "@arethetypeswrong/core/problems"
import { publint } from "publint"
import { formatMessage } from "publint/utils"
import type { Manifest } from "./packed.ts"

/** How programs import the packages: Node and `module: NodeNext`, and bundlers. */
const kinds = ["node16-esm", "bundler"] as const

/** The faults of a tarball's manifest and of the given entry points (`.`, `./Binding`). */
export const entryFaults = async (
  manifest: Manifest,
  tarball: string,
  entryPoints: ReadonlyArray<string>
): Promise<ReadonlyArray<string>> => {
  const data = new Uint8Array(readFileSync(tarball))
  const { messages } = await publint({ pack: { tarball: data.buffer }, strict: true })
  const ofManifest = messages.map((message) => `publint: ${formatMessage(message, manifest) ?? message.code}`)
  const analysis = await checkPackage(createPackageFromTarballData(data), { entrypoints: [...entryPoints] })
  // Where no entry point has types, there is nothing to compare, and the analysis says only that.
  if (analysis.types === false)
    return [...ofManifest, "types: the package has none"].map((fault) => `${manifest.name}: ${fault}`)
  const ofTypes = analysis.problems
    .filter((problem) => kinds.some((kind) => problemAffectsResolutionKind(problem, kind, analysis)))
    .map((problem) => `types: ${entryPointOf(problem)}${problemKindInfo[problem.kind].shortDescription}`)
  return [...ofManifest, ...new Set(ofTypes)].map((fault) => `${manifest.name}: ${fault}`)
}

const entryPointOf = (problem: Problem): string => ("entrypoint" in problem ? `${problem.entrypoint}: ` : "")
