/**
 * The client of Prisma as `prisma generate` makes it, for a schema without models. The generated code holds this configuration and types; making it here needs neither Prisma's command line
 * nor an engine: queries are compiled by the WebAssembly module of `@prisma/client`.
 */
import { PrismaPg } from "@prisma/adapter-pg"
import { type GetPrismaClientConfig, getPrismaClient } from "@prisma/client/runtime/client"

const compiler = "@prisma/client/runtime/query_compiler_fast_bg.postgresql"

/** The libraries of the workspace's TypeScript do not name it. */
const { Module } = Reflect.get(globalThis, "WebAssembly") as { readonly Module: new (bytes: Uint8Array) => unknown }

const config: GetPrismaClientConfig = {
  previewFeatures: [],
  clientVersion: "7.10.0",
  engineVersion: "none",
  activeProvider: "postgresql",
  inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: Buffer.alloc(12).toString("base64") },
  compilerWasm: {
    getRuntime: () => import(`${compiler}.mjs`),
    getQueryCompilerWasmModule: async () =>
      new Module(Buffer.from((await import(`${compiler}.wasm-base64.mjs`)).wasm, "base64")),
    importName: "./query_compiler_fast_bg.js"
  }
}

/** The members that the tests call, typed as generated clients type them. */
export interface Tx {
  $executeRawUnsafe(query: string, ...values: Array<unknown>): Promise<number>
}

export interface Prisma extends Tx {
  $transaction<R>(use: (tx: Tx) => Promise<R>): Promise<R>
  $disconnect(): Promise<void>
}

export const prismaOn = (connectionString: string): Prisma => {
  const PrismaClient = getPrismaClient(config) as unknown as new (options: object) => Prisma
  return new PrismaClient({ adapter: new PrismaPg({ connectionString }) })
}
