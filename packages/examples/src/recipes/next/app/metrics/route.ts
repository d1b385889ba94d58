export { answer as GET } from "../../service.ts"

/** Answered anew for each request. */
export const dynamic = "force-dynamic"
