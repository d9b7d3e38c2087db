import DefaultTheme from "vitepress/theme";
import { defineAsyncComponent } from "vue";

import "./style.css";

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    // The renderer of the HTTP API is large, and one page needs it.
    const load = async () => {
      const { theme } = await import("vitepress-openapi/client");
      theme.enhanceApp({ app });
      return import("./OpenAPI.vue");
    };
    app.component("OpenAPI", defineAsyncComponent(load));
  },
};
