/** A NestJS service that installs the tarballs beside the major version of Nest that the workspace does not have, is compiled to CommonJS as `nest build` does, and runs. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Packed, run } from "./packed.ts"

/** Nest 11 in its last versions; the workspace has 12. */
const nest: Readonly<Record<string, string>> = {
  "@nestjs/common": "11.2.10",
  "@nestjs/core": "11.2.10",
  "@nestjs/microservices": "11.2.6",
  "@nestjs/platform-express": "11.2.10",
  "@nestjs/terminus": "11.1.1"
}

const eventbus = ["core", "config", "kafka-client", "kafkajs", "node", "nestjs", "testkit"].map(
  (name) => `@eventbus/${name}`
)

/** The compiler options of `nest new`, and strict. The types of the packages are checked against those of this Nest, too. */
const compilerOptions = {
  target: "ES2023",
  module: "nodenext",
  outDir: "dist",
  strict: true,
  emitDecoratorMetadata: true,
  experimentalDecorators: true,
  types: ["node"]
}

/** Throws where the service cannot be installed, does not compile, or ends with an error. */
export const serveOtherNest = (packages: ReadonlyArray<Packed>, root: string, work: string): void => {
  const project = join(work, "nest")
  mkdirSync(project)
  const pinned = [".", "packages/nestjs"].map((folder) => readJson(join(root, folder, "package.json")).devDependencies)
  const beside = ["effect", "reflect-metadata", "rxjs", "typescript", "@types/node"]
  const tarballs = packages.filter(({ manifest }) => eventbus.includes(manifest.name))
  const dependencies = {
    ...nest,
    ...Object.fromEntries(beside.map((name) => [name, pinned.find((versions) => name in versions)[name]])),
    ...Object.fromEntries(tarballs.map(({ manifest, tarball }) => [manifest.name, `file:${tarball}`]))
  }
  const write = (name: string, content: object) => writeFileSync(join(project, name), JSON.stringify(content))
  write("package.json", { name: "nest-service", private: true, dependencies })
  write("tsconfig.json", { compilerOptions, files: ["service.ts"] })
  copyFileSync(join(root, "packages/nestjs/test/program/service.ts"), join(project, "service.ts"))

  run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"], project)
  console.log(`a service on NestJS ${nest["@nestjs/core"]}`)
  run(join(project, "node_modules/.bin/tsc"), ["-p", "."], project)
  process.stdout.write(run(process.execPath, ["dist/service.js"], project))
}

const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"))
