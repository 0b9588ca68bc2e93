export const render = (template: string, data: Record<string, string>) =>
  template.replace(/{{(\w+)}}/g, (_, key) => data[key] ?? "")
