// What the texts need of a page, for tests outside of one. To be imported first.
const nothing = () => undefined;
Object.assign(globalThis, {
  location: { search: "?lang=en", pathname: "/" },
  matchMedia: () => ({ matches: false, addEventListener: nothing }),
  addEventListener: nothing,
  ...("navigator" in globalThis ? {} : { navigator: { languages: ["en"] } }),
  document: { documentElement: { lang: "", dataset: {} } },
});
