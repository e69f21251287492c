import { useRoute } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { nextTick, onMounted, watch } from 'vue'

import './style.css'

export default {
  ...DefaultTheme,
  setup() {
    // The home page and the page of an unknown address come without a main landmark.
    const route = useRoute()
    const mark = () => {
      const content = document.getElementById('VPContent')
      if (document.querySelector('main')) content?.removeAttribute('role')
      else content?.setAttribute('role', 'main')
    }
    onMounted(mark)
    watch(() => route.data.relativePath, () => nextTick(mark))
  },
}
