export * as Application from "./Application.ts"
export * as Cli from "./Cli.ts"
