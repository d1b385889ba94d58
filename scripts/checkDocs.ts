/**
 * Proves the examples of the documentation: each `ts` block type-checks on its own against the workspace's packages. Each `sh` block whose first line is `# runs in CI`, and
 * each `ts` block whose first line is `// runs in CI`, exits with 0.
 *
 *   node scripts/checkDocs.ts [FILE.md ...]      default: README.md, docs/**\/*.md, packages/*\/README.md
 */
import { spawnSync } from "node:child_process"
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { type Block, markdownBlocks } from "./markdownBlocks.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
/** Of this run alone: two checks at once do not meet. */
const folder = join(root, `node_modules/.cache/doc-examples-${process.pid}`)
const runMarkers: Readonly<Record<string, string>> = { sh: "# runs in CI", ts: "// runs in CI" }
const runTimeoutMillis = 5 * 60_000

interface Example extends Block {
  readonly file: string
}

/** Every package, and what each of them and its tests depend on, can be imported by an example. */
const linkModules = (): void => {
  const link = (name: string, target: string) => {
    const path = join(folder, "node_modules", name)
    if (existsSync(path)) return
    mkdirSync(dirname(path), { recursive: true })
    symlinkSync(target, path)
  }
  for (const manifest of globSync("packages/*/package.json", { cwd: root })) {
    const home = join(root, dirname(manifest))
    const { name, dependencies, peerDependencies, devDependencies } = JSON.parse(
      readFileSync(join(root, manifest), "utf8")
    )
    link(name, home)
    for (const dependency of Object.keys({ ...dependencies, ...peerDependencies, ...devDependencies })) {
      const target = join(home, "node_modules", dependency)
      if (existsSync(target)) link(dependency, target)
    }
  }
}

/** Each block keeps its line numbers: the file begins with as many empty lines as stand above the block. */
const writeExample = (example: Example, index: number): string => {
  const name = `${index}.ts`
  writeFileSync(join(folder, name), "\n".repeat(example.line - 1) + example.code)
  return name
}

const tsconfig = (files: ReadonlyArray<string>) => ({
  extends: join(root, "tsconfig.base.json"),
  compilerOptions: {
    noEmit: true,
    composite: false,
    // An example publishes no declarations. Theirs would name types by the path of whichever package the compiler met first.
    declaration: false,
    declarationMap: false,
    rewriteRelativeImportExtensions: false,
    allowImportingTsExtensions: true,
    moduleDetection: "force",
    // Examples for NestJS are compiled, with decorators and parameter properties.
    experimentalDecorators: true,
    erasableSyntaxOnly: false
  },
  files
})

/** The type errors of the examples, each beginning with `file:line:column`. Those of the packages are the type check's to report. */
const typeErrors = (examples: ReadonlyArray<Example>): ReadonlyArray<string> => {
  mkdirSync(folder, { recursive: true })
  linkModules()
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }))
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig(examples.map(writeExample))))
  const tsc = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", folder, "--pretty", "false"], {
    cwd: folder,
    encoding: "utf8"
  })
  return `${tsc.stdout}${tsc.stderr}`
    .split(/\n(?! )/) // the lines of one message after the first are indented
    .filter((message) => /^(\d+\.ts\(|error )/.test(message))
    .map((message) =>
      message.replace(
        /^(\d+)\.ts\((\d+),(\d+)\)/,
        (_, index, line, column) => `${examples[index]?.file}:${line}:${column}`
      )
    )
}

const run = (example: Example): boolean => {
  const { status, signal, error, stdout, stderr } = example.language === "sh" ? runScript(example) : runProgram(example)
  if (status === 0) return true
  const end = status === null ? `was stopped (${signal ?? error?.message})` : `exited with ${status}`
  console.error(`${example.file}:${example.line}: the block ${end}\n${stdout}${stderr}`.trimEnd())
  return false
}

const runScript = ({ code }: Example) =>
  spawnSync("bash", ["-euo", "pipefail", "-c", code], { cwd: root, encoding: "utf8", timeout: runTimeoutMillis })

/** Runs a program outside of `node_modules`, in which Node strips no types. It finds the packages that the types were checked with. */
const runProgram = ({ code }: Example) => {
  const home = mkdtempSync(join(tmpdir(), "doc-example-"))
  try {
    symlinkSync(join(folder, "node_modules"), join(home, "node_modules"))
    writeFileSync(join(home, "package.json"), JSON.stringify({ type: "module" }))
    writeFileSync(join(home, "main.ts"), code)
    return spawnSync(process.execPath, ["main.ts"], { cwd: home, encoding: "utf8", timeout: runTimeoutMillis })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

const documents = (): ReadonlyArray<string> =>
  globSync(["README.md", "DEVELOPERS.md", "docs/**/*.md", "packages/*/README.md"], { cwd: root }).sort()

const given = process.argv.slice(2).map((file) => relative(root, resolve(file)))
const examples = (given.length > 0 ? given : documents()).flatMap((file) =>
  markdownBlocks(readFileSync(join(root, file), "utf8")).map((block): Example => ({ ...block, file }))
)
const typed = examples.filter(({ language }) => language === "ts" || language === "typescript")
const runnable = examples.filter(({ language, code }) => {
  const marker = runMarkers[language]
  return marker !== undefined && code.trimStart().startsWith(marker)
})

process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
const errors = typed.length === 0 ? [] : typeErrors(typed)
for (const error of errors) console.error(error)
const failedRuns = runnable.filter((example) => !run(example)).length
console.log(
  `Documentation: ${typed.length} ts blocks with ${errors.length} type errors; ${runnable.length} blocks run, ${failedRuns} failed.`
)
process.exitCode = errors.length + failedRuns > 0 ? 1 : 0
